# Starts $MINIBROKER in the background, with the inputs of action.yml as variables, and writes the outputs to
# $GITHUB_OUTPUT. `minibroker status --state-dir $RUNNER_TEMP/minibroker-state` names its log.
set -euo pipefail

state=$RUNNER_TEMP/minibroker-state
ready=$RUNNER_TEMP/minibroker.ready
arguments=(--memory --listen "127.0.0.1:$PORT" --control 127.0.0.1:0 --state-dir "$state" --ready-file "$ready")
while read -r topic; do
  [[ -z $topic ]] || arguments+=(--topic "$topic")
done <<<"$TOPICS"
[[ -z $SEED ]] || arguments+=(--seed "$SEED")

if ! "$MINIBROKER" up --detach "${arguments[@]}"; then
  echo "::error::minibroker did not start"
  exit 1
fi
{ read -r broker && read -r control; } <"$ready"
echo "bootstrap=${broker##* on }" >>"$GITHUB_OUTPUT"
echo "control=${control##* on }" >>"$GITHUB_OUTPUT"
