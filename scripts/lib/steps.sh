# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Messages and timed steps for the scripts of this folder's parent. To be sourced.
# A caller sets: me (its name, for messages) and log_dir (where the logs of steps go).

# One line for a person, on the error output: the standard output is for data.
say() { printf '%s\n' "$*" >&2; }
warn() { say "${me:?}: warning: $*"; }
die() { say "${me:?}: $*"; exit 1; }

# step NAME SENTENCE COMMAND...: runs the command (a function, or a program) in a subshell with its output in
# LOG_DIR/NAME.log and prints one line with the seconds that it took. A failure names the step and the log
# and ends the script. Must not be called in a condition, where the shell would go on after a failed command.
step() {
	local name=$1 sentence=$2 log=${log_dir:?}/$1.log status=0 start=$SECONDS
	shift 2
	mkdir -p "$log_dir"
	printf '%s: %s ...' "${me:?}" "$sentence" >&2
	set +e
	(
		exec 9>&- >"$log" 2>&1 </dev/null
		set -euo pipefail
		"$@"
	)
	status=$?
	set -e
	if ((status == 0)); then
		printf ' %d s\n' "$((SECONDS - start))" >&2
		return 0
	fi
	printf ' FAILED\n' >&2
	tail -n 15 "$log" | sed 's/^/    /' >&2
	die "step '$name' ($sentence) failed with status $status; its whole log: $log"
}
