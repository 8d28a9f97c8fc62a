"""How well a judge judges: a labelled set, measures, agreement with people, fitness for strict ACC."""
