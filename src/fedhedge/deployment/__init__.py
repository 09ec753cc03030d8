"""A real federation: any method of the registry across sites that keep their rows, their state and their budget."""
