// Package rights tells which rights at the API server an operator needs: from its watches.yaml and
// the tasks of its content (Needed), or from the requests in an API server's audit log (FromAudit).
// It reads which rights the files of config/rbac give (Granted), writes roles, and brings those of
// a project up to date (Project).
//
// Objects tells which objects a task reads or writes, as far as kinds are literal.
package rights
