#!/bin/sh
# As in the published images of memcached, options alone are those of memcached.
case ${1-} in -*) set -- memcached "$@" ;; esac
exec "$@"
