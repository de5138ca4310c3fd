"""The pages of the lab: each module renders one part, and handles its buttons."""
