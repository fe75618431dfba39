// Package fleet is for the commands with which people operate custom resources: status,
// logs, reconcile, suspend and resume, as processes beside a manager with real Ansible.
package fleet
