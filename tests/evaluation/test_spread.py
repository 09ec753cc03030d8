import numpy as np
import pandas as pd
import pytest

from fedhedge.checks import InvalidInput
from fedhedge.evaluation import spread

VALUES = pd.Series([0.9, 0.5, np.nan, 0.7, 0.1])


def test_every_view_by_hand_with_a_client_left_out():
    found = spread(VALUES, worst=2, alpha=0.3, group=[0, 4])
    assert found.mean == pytest.approx(0.55)
    assert found.sd == pytest.approx(np.sqrt(np.mean((np.array([0.9, 0.5, 0.7, 0.1]) - 0.55) ** 2)))
    assert found.worst == 0.1
    assert found.worst_mean == pytest.approx(0.3)
    assert found.cvar == pytest.approx((0.1 + 0.2 * 0.5) / 1.2)
    assert found.group == pytest.approx(0.5)


def test_of_losses_the_largest_are_the_worst():
    found = spread(VALUES, worst=2, alpha=0.3, higher_is_better=False)
    assert (found.worst, found.worst_mean) == (0.9, pytest.approx(0.8))
    assert found.cvar == pytest.approx((0.9 + 0.2 * 0.7) / 1.2)


def test_few_clients_and_none():
    assert spread(pd.Series([0.4]), worst=3).worst_mean == 0.4
    assert np.isnan(list(vars(spread(pd.Series([np.nan, np.nan]))).values())).all()
    assert np.isnan(spread(VALUES).group)
    assert np.isnan(spread(VALUES, group=[2]).group)


def test_an_unknown_client_is_refused():
    with pytest.raises(InvalidInput, match=r"group\[1\]: received 9; allowed: 0, 1, 2, 3, 4"):
        spread(VALUES, group=[0, 9])
