#!/bin/sh
# A script that runs several programs, some at once, some in a pipe, and passes a status on.
# Arguments: the folder of the built programs.
"$1/no_openmp" || echo "status $?"
"$1/regions" | sed 's/checksum/piped/'
"$1/regions" >/dev/null &
first=$!
seq 1 100 | "$1/filter" | tail -2
wait $first && echo "background done"
"$1/crash" null 2>/dev/null
echo "crash $?"
(ulimit -n 5; "$1/regions")
env -i OMP_NUM_THREADS=2 "$1/regions"
exec "$1/leave" exit
