// Package mysqlcluster shows what a change of a MySQLCluster's spec becomes on a real
// control plane with the real Ansible, and what a server that runs elsewhere does to it.
//
// Pods run nothing here: test/node shows the same with a MySQL server in them. The server
// that runs elsewhere is a real one.
package mysqlcluster
