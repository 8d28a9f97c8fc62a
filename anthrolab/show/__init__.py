"""What people look at: printed tables, figures, chat bubbles, the HTML report, and the notebook runner."""
