#!/bin/sh
# Compiles through ccache, but for precompiled headers: one from the cache remembers the times of other files, and the
# compiler then reads headers twice.
case "$*" in
  *.hxx.gch*|*-emit-pch*) exec "$@" ;;
esac
exec ccache "$@"
