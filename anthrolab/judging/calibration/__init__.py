"""How well a judge judges: measured on the labelled set, beside people, and whether it is fit for strict ACC."""
