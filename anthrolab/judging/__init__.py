"""The judging room: the L0 gate, the rubric, and the judges that answer its checkboxes."""
