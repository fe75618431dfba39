#!/bin/sh
# What ssh exits with when it cannot connect.
exit 255
