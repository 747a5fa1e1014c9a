#!/usr/bin/env bash
# Makes the profiles of fixtures/jfr: ./profiles.sh FOLDER [SECONDS]
#
# Runs LockProgram under async-profiler (from Maven Central, checked by digest) and under JDK Flight Recorder, and
# writes for each run the recording, the output of the JDK's `jfr` for it, and the program's own log of waits and
# holders. Needs a JDK (openjdk-17-jdk-headless), curl and unzip.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(mkdir -p "$1" && cd "$1" && pwd)"
seconds="${2:-3}"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/whyslow-dev/jvm"
mkdir -p "$cache"

# Prints the path of the library: library VERSION DIGEST-OF-JAR
library() {
    local version="$1" digest="$2" jar="$cache/async-profiler-$1.jar"
    if [ ! -f "$jar" ]; then
        curl -fsSL -o "$jar.part" \
            "https://repo1.maven.org/maven2/tools/profiler/async-profiler/$version/async-profiler-$version.jar"
        mv "$jar.part" "$jar"
    fi
    echo "$digest  $jar" | sha256sum --check --quiet >&2
    mkdir -p "$scratch/$version"
    unzip -o -j -q "$jar" 'linux-x64/*' -d "$scratch/$version"
    echo "./$version/libasyncProfiler.so"
}

# run NAME JVM-OPTIONS… The environment is empty, because recordings contain it.
run() {
    local name="$1"
    shift
    (cd "$scratch" && env -i PATH=/usr/bin:/bin LC_ALL=C java "$@" -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
        -cp . LockProgram . "$seconds" 7 >&2)
    mv "$scratch/$name.jfr" "$folder/"
    mv "$scratch/truth.csv" "$folder/$name.truth.csv"
    python3 "$here/printed.py" --count "$folder/$name.jfr" >"$folder/$name.counts"
    python3 "$here/printed.py" "$folder/$name.jfr" >"$folder/$name.printed.csv"
}

# A fixed path, because recordings contain it.
scratch=/tmp/whyslow-jvm
rm -rf "$scratch"
mkdir -m 700 "$scratch"
trap 'rm -rf "$scratch"' EXIT
# Recordings do not contain other processes either.
jfr configure --input profile.jfc --output "$scratch/quiet.jfc" jdk.SystemProcess#enabled=false \
    jdk.InitialEnvironmentVariable#enabled=false jdk.InitialSystemProperty#enabled=false \
    jdk.OSInformation#enabled=false jdk.CPUInformation#enabled=false jdk.NativeLibrary#enabled=false >&2
javac -d "$scratch" "$here/LockProgram.java"
# In the program's folder, because recordings contain the agent's path.
old="$(library 3.0 8f798860049d01f4a2f853596d28c85d2983f0c098f165a32909b7da9c74209f)"
new="$(library 4.4 47f321b8cdbadda2c281a612f6ac245254c81a02ce578abf782a53170ea40b37)"
agent_options="start,event=wall,interval=10ms,lock=1ms,jfr"
run each "-agentpath:$old=$agent_options,file=each.jfr"
run batches "-agentpath:$new=$agent_options,file=batches.jfr"
run chunks "-agentpath:$new=$agent_options,chunktime=1,file=chunks.jfr"
run both "-agentpath:$new=$agent_options,jfrsync=quiet.jfc,file=both.jfr"
run jdk "-XX:StartFlightRecording=filename=jdk.jfr,settings=quiet.jfc"
