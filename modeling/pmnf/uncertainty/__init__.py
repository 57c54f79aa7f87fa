"""What measurements leave open of a model, and how that is said."""
