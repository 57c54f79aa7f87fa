"""From measurements to models and decisions. Neither reads files nor prints."""
