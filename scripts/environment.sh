#!/bin/sh
# Create a virtual environment and install the package with the given extras: environment.sh FOLDER [EXTRAS]
set -eu
folder=$1
extras=${2:+[$2]}
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    found=$("$python" --version 2>&1 || echo "no $python")
    echo "fedhedge needs Python 3.11 or newer; found: $found. Name another one: make demo PYTHON=python3.12" >&2
    exit 2
fi
if [ ! -x "$folder/bin/pip" ] && ! "$python" -m venv "$folder" >/dev/null 2>&1; then
    # Debian and Ubuntu ship Python without its venv module.
    version=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq "$version"
        "$python" -m venv --clear "$folder"
    else
        echo "Python cannot create a virtual environment here. Run: sudo apt-get install $version" >&2
        exit 2
    fi
fi
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".$extras"
