"""The pages of the lab: each module makes what one part of it shows, and does what its buttons ask."""
