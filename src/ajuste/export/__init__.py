"""What a run has shown, in a form that can be put to use."""
