"""Estimators after scikit-learn's conventions, on top of the simulation."""

from fedhedge.estimators.classifier import FederatedDROClassifier

__all__ = ["FederatedDROClassifier"]
