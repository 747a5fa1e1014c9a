#!/usr/bin/env bash
# Makes the profiles of fixtures/jfr: ./profiles.sh FOLDER [SECONDS]
#
# Runs LockProgram under async-profiler (from Maven Central, checked by digest) and under the JDK's own recorder,
# and leaves for each run the recording, what the JDK's `jfr` prints of it, and the program's own log of
# who waited for whom. Needs a JDK (openjdk-17-jdk-headless), curl and unzip.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(mkdir -p "$1" && cd "$1" && pwd)"
seconds="${2:-3}"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/whyslow-dev/jvm"
mkdir -p "$cache"

# Prints the path of the library of that version, whose jar has that digest.
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

# A run under this name, with these options of the virtual machine. Recordings tell of their environment, so
# there is none.
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

# Always the same, as recordings name it.
scratch=/tmp/whyslow-jvm
rm -rf "$scratch"
mkdir -m 700 "$scratch"
trap 'rm -rf "$scratch"' EXIT
# Nor of other processes.
jfr configure --input profile.jfc --output "$scratch/quiet.jfc" jdk.SystemProcess#enabled=false \
    jdk.InitialEnvironmentVariable#enabled=false jdk.InitialSystemProperty#enabled=false \
    jdk.OSInformation#enabled=false jdk.CPUInformation#enabled=false jdk.NativeLibrary#enabled=false >&2
javac -d "$scratch" "$here/LockProgram.java"
# Beside the program: recordings name their agents.
old="$(library 3.0 8f798860049d01f4a2f853596d28c85d2983f0c098f165a32909b7da9c74209f)"
new="$(library 4.4 47f321b8cdbadda2c281a612f6ac245254c81a02ce578abf782a53170ea40b37)"
asked="start,event=wall,interval=10ms,lock=1ms,jfr"
run each "-agentpath:$old=$asked,file=each.jfr"
run batches "-agentpath:$new=$asked,file=batches.jfr"
run chunks "-agentpath:$new=$asked,chunktime=1,file=chunks.jfr"
run both "-agentpath:$new=$asked,jfrsync=quiet.jfc,file=both.jfr"
run jdk "-XX:StartFlightRecording=filename=jdk.jfr,settings=quiet.jfc"
