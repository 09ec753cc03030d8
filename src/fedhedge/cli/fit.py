"""`fedhedge fit`: a robust, private classifier from one file per site."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

from fedhedge.cli.run import add_overrides

DESCRIPTION = """\
Train a linear classifier over sites, distributionally robust and, where asked, differentially private.

SITES is a folder with one .csv or .parquet file for each site, all with the same columns: the label, and numbers.
The model folder gets model.json, its arrays, and privacy.txt with the privacy statement of each site; the first site's
is printed, and how the others differ. A model in the folder is replaced only with --overwrite.
"""
EXAMPLE = """\
a configuration file (all keys of a table have defaults; without a file the method is "dro", which is not private):
  [classifier]
  method = "dp-dro"           # dro, ova-dro, dp-dro, dp-erm, dp-sgd
  rounds = 50
  [classifier.feature_bounds] # ranges of the sensors, known without looking at the rows
  flow = [0.0, 60.0]
  pressure = [0.0, 12.0]
  [privacy]                   # of each row of each site, for the whole run
  epsilon = 3.0
  delta = 1e-6
  # [estimated_bounds]        # in place of feature_bounds: found from the rows, for a share of the budget
  # outer = [0.0, 1000.0]     # wide ranges, in the same forms

to try it:
  fedhedge data export pump sites/ --clients 4 --label fault
  fedhedge fit sites/ --label fault --config examples/dro-sites.toml -o model/
  fedhedge data export pump new/ --clients 1 --label fault --set seed=1 --set runs=400
  fedhedge predict model/ new/site-1.csv -o predicted.csv
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser(
        "fit", help="train a classifier on the files of sites", description=DESCRIPTION, epilog=EXAMPLE, **style
    )
    parser.add_argument("sites", type=Path, metavar="SITES", help="folder with one file for each site")
    parser.add_argument("--label", required=True, metavar="COLUMN", help="the column to predict")
    parser.add_argument("--config", type=Path, metavar="CONFIG.toml", help="tables [classifier] and [privacy]")
    add_overrides(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="DIR", help="folder of the model")
    parser.add_argument("--overwrite", action="store_true", help="replace the model that the folder holds")
    parser.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors")
    parser.set_defaults(execute=run)


def run(given: argparse.Namespace) -> int:
    from fedhedge.checks import InvalidInput
    from fedhedge.cli import out
    from fedhedge.cli.compilation import keep_compiled
    from fedhedge.config.classifier import load_classifier
    from fedhedge.data.folder import read_sites
    from fedhedge.estimators.folder import MODEL
    from fedhedge.estimators.statements import in_brief

    out.check_folder(given.out)
    if (given.out / MODEL).exists():
        earlier = "what the earlier model released still counts against the budget of its rows"
        if not given.overwrite:
            raise InvalidInput("-o", str(given.out), "a folder without a model, or --overwrite", earlier)
        warnings.warn(f"{given.out} is overwritten; {earlier}", stacklevel=2)
    model = load_classifier(given.config, given.overrides)
    features, labels, sites = read_sites(given.sites, given.label)
    keep_compiled()
    asked = model.verbose
    model.set_params(verbose=asked or not given.quiet).fit(features, labels, clients=sites)
    model.set_params(verbose=asked).save(given.out)
    if not given.quiet:
        classes, rounds = len(model.classes_), model.n_iter_
        about = f"{len(model.sites_)} sites, {model.n_features_in_} features, {classes} classes, {rounds} rounds"
        print(f"{given.out}: {model.method}, {about}\n\n{in_brief(model.privacy_)}", end="")
    return 0
