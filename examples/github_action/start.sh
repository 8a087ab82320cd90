# Starts $MINIBROKER in the background, with the inputs of action.yml as variables. Waits until it serves, and writes
# the outputs to $GITHUB_OUTPUT. The process ends with the job; its log is $RUNNER_TEMP/minibroker.log.
set -euo pipefail

ready=$RUNNER_TEMP/minibroker.ready
log=$RUNNER_TEMP/minibroker.log
arguments=(--memory --listen "127.0.0.1:$PORT" --control 127.0.0.1:0 --ready-file "$ready")
while read -r topic; do
  [[ -z $topic ]] || arguments+=(--topic "$topic")
done <<<"$TOPICS"
[[ -z $SEED ]] || arguments+=(--seed "$SEED")

rm -f "$ready"
nohup "$MINIBROKER" serve "${arguments[@]}" >"$log" 2>&1 &
until [[ -e $ready ]]; do
  if ! kill -0 $! 2>/dev/null; then
    echo "::error::minibroker did not start: $(tail -n 1 "$log")"
    exit 1
  fi
  sleep 0.05
done

{ read -r broker && read -r control; } <"$ready"
echo "bootstrap=${broker##* on }" >>"$GITHUB_OUTPUT"
echo "control=${control##* on }" >>"$GITHUB_OUTPUT"
echo "${broker}, ${control##* on }"
