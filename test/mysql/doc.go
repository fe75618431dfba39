// Package mysql tests the operator's own content, with a real manager, a real API
// server and a real MariaDB: MySQLDatabase and MySQLUser on a MySQLCluster that runs
// elsewhere. What is claimed is asked of the server, by a client that logs in as
// applications do.
//
// Servers in pods are test/node's.
package mysql
