// Package dumps tests the script that makes and restores dumps, roles/mysqlbackup/files/dumps.sh,
// by itself: against servers that are after the files of its machine, dumps that are, and
// for what it does where room is short. test/mysqlbackup tests what operators do with it.
package dumps
