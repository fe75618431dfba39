package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Limits of an inventory, which is copied for every run.
const (
	maxInventoryFiles = 10_000
	maxInventoryBytes = 64 << 20
	maxInventoryDepth = 16
)

// writeInventory writes the inventory and returns its path in the run directory. For a
// single file that is the path of the file, because Ansible ignores some file names in a
// directory, such as "hosts.ini".
func writeInventory(run *os.Root, temp string, in Inputs) (string, error) {
	if in.Inventory == "" {
		content, err := localhostInventory(in, temp)
		if err != nil {
			return "", err
		}
		return "inventory/hosts", writeFile(run, "inventory/hosts", []byte(content), 0o600)
	}
	info, err := os.Stat(in.Inventory)
	if err != nil {
		return "", fmt.Errorf("inventory: %w", err)
	}
	c := copier{to: run}
	target := "inventory"
	if info.IsDir() {
		err = c.directory(in.Inventory, target, 0)
	} else {
		target = filepath.Join(target, filepath.Base(in.Inventory))
		err = c.file(in.Inventory, target, info)
	}
	if err != nil {
		return "", fmt.Errorf("copy inventory %q: %w", in.Inventory, err)
	}
	return target, nil
}

// remoteTempName is the directory for Ansible's so-called remote temporary files.
const remoteTempName = "remote"

// localhostInventory returns the inventory with only the manager's own machine. It puts
// remote temporary files and the state of asynchronous tasks into the run directory; by
// default they would be left in the home directory.
func localhostInventory(in Inputs, temp string) (string, error) {
	vars := []string{
		"ansible_connection=local",
		"ansible_remote_tmp=" + iniQuote(filepath.Join(temp, remoteTempName)),
		"ansible_async_dir=" + iniQuote(filepath.Join(temp, "async")),
	}
	if in.Python != "" {
		vars = append(vars, "ansible_python_interpreter="+iniQuote(in.Python))
	}
	if in.Pipelining {
		vars = append(vars, "ansible_pipelining=True")
	}
	line := "localhost " + strings.Join(vars, " ")
	if strings.ContainsAny(line, "\n\r") {
		return "", errors.New("inventory: a path with a line break can't be used")
	}
	return line + "\n", nil
}

// iniQuote quotes a word for Ansible's INI inventory, which splits lines as a shell does.
func iniQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

// copier copies an inventory. It follows symbolic links, because mounted ConfigMaps consist
// of them, and the inventory was written by the operator's author.
type copier struct {
	to    *os.Root
	files int
	bytes int64
}

func (c *copier) directory(from, to string, depth int) error {
	if depth > maxInventoryDepth {
		return fmt.Errorf("%q is nested deeper than %d directories", from, maxInventoryDepth)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// A mounted ConfigMap holds its files a second time in "..data".
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if err := c.entry(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) entry(from, to string, depth int) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.file(from, to, info)
	}
	if err := mkdir(c.to, to); err != nil {
		return err
	}
	return c.directory(from, to, depth+1)
}

func (c *copier) file(from, to string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is neither a file nor a directory", from)
	}
	c.files++
	c.bytes += info.Size()
	if c.files > maxInventoryFiles || c.bytes > maxInventoryBytes {
		return fmt.Errorf("it is larger than %d files or %d MiB", maxInventoryFiles, maxInventoryBytes>>20)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info.Mode()&0o111 != 0 {
		mode = 0o700
	}
	return writeFile(c.to, to, content, mode)
}
