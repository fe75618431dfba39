// Package reader asks the Python environment about Ansible content: what Jinja templates and
// expressions name (by Jinja's own parser), which plugins are installed and what they need, and
// whether Ansible's own loader takes playbooks and roles.
//
// Start starts one Python process for all questions. The program is below program/. It imports
// the content's plugins and executes nothing else of the content; no template is rendered.
package reader
