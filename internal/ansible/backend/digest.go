package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/files"
	"github.com/ensign-operator/ensign/internal/watches"
)

// digestLength is the number of hexadecimal digits of a digest: enough that two digests of
// a watch are never equal by chance, and short enough for a status.
const digestLength = 32

// digestWatches returns a digest for each watch. It covers the watch's entry and content,
// the collections that any content may use, the configuration file of Ansible, and the Python
// environment. After a restart, a CR that succeeded with the same digest does not run.
func (b *Backend) digestWatches(roles, collections, settings []string) (map[schema.GroupVersionKind]string, error) {
	trees := watches.Trees(collections)
	installed := files.DigestCollections(trees...)
	digests := map[schema.GroupVersionKind]string{}
	for _, watch := range b.watches {
		own, err := b.digestContent(watch, roles, trees, settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", watch.GVK.GroupKind(), err)
		}
		entry, err := json.Marshal(digestedEntry(watch))
		if err != nil {
			return nil, fmt.Errorf("digest the watch of %s: %w", watch.GVK.GroupKind(), err)
		}
		sum := sha256.Sum256([]byte(strings.Join([]string{string(entry), own, installed, b.info.Digest}, "\n")))
		digests[watch.GVK] = hex.EncodeToString(sum[:])[:digestLength]
	}
	return digests, nil
}

// digestContent returns a digest of the files that runs of the watch may read. The directory of a
// playbook may be the project's: there, files that git ignores and the directory of runs do not
// count.
func (b *Backend) digestContent(watch watches.Watch, roles, trees, settings []string) (string, error) {
	playbooks := playbookDirs(watch)
	paths := slices.DeleteFunc(watch.ContentPaths(roles, trees), func(path string) bool { return slices.Contains(playbooks, path) })
	own, err := files.Digest(append(paths, settings...)...)
	if err != nil {
		return "", err
	}
	digests := []string{own}
	for _, dir := range playbooks {
		beside, err := b.digestPlaybookDir(dir)
		if err != nil {
			return "", err
		}
		digests = append(digests, beside)
	}
	return strings.Join(digests, ""), nil
}

// digestPlaybookDir returns a digest of the directory of a playbook, without files that git ignores
// and without the directory of runs.
func (b *Backend) digestPlaybookDir(dir string) (string, error) {
	return files.DigestWithout(b.noContent(dir), dir)
}

// noContent reports which files in the directory of a playbook are not content.
func (b *Backend) noContent(dir string) func(path string, isDir bool) bool {
	ignored := files.Ignored(dir)
	return func(path string, isDir bool) bool {
		resolved, _ := filepath.EvalSymlinks(path)
		return resolved == b.runDir || ignored(path, isDir)
	}
}

// nameChanges logs which files have changed since a manager with this directory of runs started last: then CRs that
// succeeded run again. A new container has no such directory, and names none.
func (b *Backend) nameChanges(settings []string) {
	if b.runDir == "" {
		return
	}
	record, digests := filepath.Join(b.runDir, ".digests"), fmt.Sprint(b.digests) // fmt sorts the kinds.
	before, err := os.ReadFile(record)
	if info, statErr := os.Stat(record); err == nil && statErr == nil && string(before) != digests {
		var changed []string
		for _, path := range append(slices.Clone(b.content), settings...) {
			skip := func(string, bool) bool { return false }
			if slices.ContainsFunc(b.watches, func(w watches.Watch) bool { return slices.Contains(playbookDirs(w), path) }) {
				skip = b.noContent(path)
			}
			changed = append(changed, files.ChangedSince(info.ModTime(), skip, path)...)
		}
		const most = 10
		b.Options.Logger.Info("the content has changed since the last start: resources that succeeded run again", "changed", changed[:min(most, len(changed))], "count", len(changed))
	}
	if err := os.WriteFile(record, []byte(digests), 0o600); err != nil {
		b.Options.Logger.Info("the next start will not name changed files", "reason", err.Error())
	}
}

// playbookDirs returns the directories of the watch's playbooks.
func playbookDirs(watch watches.Watch) []string {
	var dirs []string
	for _, c := range watch.Contents() {
		if c.Playbook != "" && !slices.Contains(dirs, filepath.Dir(c.Playbook)) {
			dirs = append(dirs, filepath.Dir(c.Playbook))
		}
	}
	return dirs
}

// digestedEntry returns the watch as the digest covers it: without its line in the file,
// and with its selector as a string, because labels.Selector has no JSON form.
func digestedEntry(watch watches.Watch) any {
	selector := watch.Selector.String()
	watch.Line, watch.Selector = 0, nil
	return struct {
		watches.Watch
		Selector string
	}{watch, selector}
}

// allContentPaths returns the ContentPaths of all watches.
func (b *Backend) allContentPaths(roles, trees []string) []string {
	var paths []string
	for _, watch := range b.watches {
		paths = append(paths, watch.ContentPaths(roles, trees)...)
	}
	return slices.Compact(slices.Sorted(slices.Values(paths)))
}
