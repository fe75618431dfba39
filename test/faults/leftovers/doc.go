// Package leftovers looks for what a manager and its runs leave behind: processes
// and zombies, open descriptors, directories, secrets in files. It looks at the
// kernel's process table and at the file system, and asks nobody.
package leftovers
