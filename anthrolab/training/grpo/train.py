"""A GRPO training from settings to an adapter: gates first, then the steps; resumable at each checkpoint."""

from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.files import only_one
from anthrolab.training.checkpoints import read_log
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.training import NO_FILES, Files, Training
from anthrolab.training.preflight import Preflight
from anthrolab.training.settings import TrainingError
from anthrolab.training.sft import Trained
from anthrolab.training.training_log import Say

__all__ = ["NO_FILES", "Files", "preflight", "train"]


def train(settings: GRPOSettings, say: Say = print, *, files: Files = NO_FILES, effort: Effort = NO_LIMIT) -> Trained:
    """Train, or go on where a killed command stopped; a finished training is only read.

    Writes into `settings.out` (see `grpo/files.py`). What is on disk is not played, judged or paid for again. TrainingError
    names the gate, setting or file that stands in the way; ModelError a partner or judge that cannot be asked any more.
    """
    with only_one(settings.out, TrainingError(f"{settings.out}: another command trains there; wait for it or give another folder")):
        training = Training.open(settings, files, effort, say)
        if training.is_finished:
            say(f"{settings.out}: is trained already; nothing to do")
            return Trained(settings.out, settings.out / "tuned", read_log(training.folder.log), training.manifest)
        with training.at_work():
            training.preflight().require()
            training.run()
        return training.finish()


def preflight(settings: GRPOSettings, say: Say = print, *, files: Files = NO_FILES, effort: Effort = NO_LIMIT) -> Preflight:
    """All gates: plays and judges the first step's dialogues (a training in the same folder takes them over)."""
    with only_one(settings.out, TrainingError(f"{settings.out}: another command trains there; wait for it or give another folder")):
        training = Training.open(settings, files, effort, say)
        with training.at_work():
            return training.preflight()
