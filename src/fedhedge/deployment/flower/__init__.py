"""The thin layer between a federation and Flower 1.42; nothing outside this folder knows of Flower."""
