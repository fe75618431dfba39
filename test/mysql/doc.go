// Package mysql tests the operator's own content, with a real manager, a real API
// server and a real MariaDB: MySQLDatabase and MySQLUser on a MySQLCluster that runs
// elsewhere. A client that logs in as applications do asks the server whether that is
// true.
//
// Servers in pods are test/node's.
package mysql
