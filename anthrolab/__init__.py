"""anthrolab: run, see, measure and train models that chat like people (AnthroDial)."""

__version__ = "0.1.0"
