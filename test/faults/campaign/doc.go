// Package campaign performs many fault plans, several at a time, and tells of them
// in a table.
package campaign
