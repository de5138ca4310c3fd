"""The pages of docs/gallery, whose figures, verdicts and pictures are put there by ``make gallery`` from real runs."""
