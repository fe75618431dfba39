// Package mysqlbackup tests MySQLBackup and MySQLRestore on the real manager, with a real
// MariaDB server and MariaDB's own programs beside the manager. The cluster is an object
// whose status the suite writes: where a server comes from is tested elsewhere, and
// Jobs, which need a pod of their own, in test/node.
package mysqlbackup
