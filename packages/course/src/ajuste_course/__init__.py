"""Ajuste in a class: sheets, predictions, figures of each student's own, and marks."""
