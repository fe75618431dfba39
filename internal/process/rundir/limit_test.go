package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// limited opens a Root with a limit; one CR may use limit/16.
func limited(t *testing.T, limit int64) (*Root, string) {
	t.Helper()
	r, path := open(t)
	if err := r.Limit(limit); err != nil {
		t.Fatal(err)
	}
	return r, path
}

// keep executes a run of the CR whose artifact takes so many blocks; one block is for the
// directory.
func keep(t *testing.T, r *Root, uid, id string, blocks int) {
	t.Helper()
	d, err := r.Prepare(uid, id, Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	if blocks > 1 {
		if err := d.WriteFile("events.jsonl", make([]byte, (blocks-1)*blockSize)); err != nil {
			t.Fatal(err)
		}
	}
	closeDir(t, d, 0)
}

// kept returns "uid/id" of all artifacts on disk, and their total size.
func kept(t *testing.T, path string) ([]string, int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(path, "*", "artifacts", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var total int64
	for _, p := range paths {
		if info, err := os.Lstat(p); err != nil || !info.IsDir() {
			continue
		}
		parts := strings.Split(strings.TrimPrefix(p, path+"/"), "/")
		_, id, _ := strings.Cut(parts[2], "Z-")
		names = append(names, parts[0]+"/"+id)
		files, err := os.ReadDir(p)
		if err != nil {
			t.Fatal(err)
		}
		total += blockSize
		for _, f := range files {
			info, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			total += max(1, (info.Size()+blockSize-1)/blockSize) * blockSize
		}
	}
	slices.Sort(names)
	return names, total
}

func TestWhatTheLimitRemoves(t *testing.T) {
	type run struct {
		uid, id string
		blocks  int
	}
	const share16 = 16 * 16 * blockSize // A CR may have 16 blocks, all together 256.
	tests := map[string]struct {
		limit int64
		runs  []run
		want  []string
	}{
		"nothing without a limit": {
			runs: []run{{"a", "1", 300}, {"a", "2", 300}},
			want: []string{"a/1", "a/2"},
		},
		"nothing within the limit, to the block": {
			limit: share16,
			runs:  []run{{"a", "1", 8}, {"a", "2", 8}},
			want:  []string{"a/1", "a/2"},
		},
		"the oldest of a CR that exceeds its share, one block too many": {
			limit: share16,
			runs:  []run{{"a", "1", 8}, {"a", "2", 1}, {"a", "3", 8}},
			want:  []string{"a/2", "a/3"},
		},
		"as many of its oldest as it takes": {
			limit: share16,
			runs:  []run{{"a", "1", 2}, {"a", "2", 2}, {"a", "3", 2}, {"a", "4", 16}},
			want:  []string{"a/4"},
		},
		"nothing of another CR, however often one runs": {
			limit: share16,
			runs:  []run{{"quiet", "1", 3}, {"a", "1", 16}, {"a", "2", 16}, {"a", "3", 16}, {"a", "4", 16}, {"a", "5", 16}, {"a", "6", 16}},
			want:  []string{"a/6", "quiet/1"},
		},
	}
	for why, test := range tests {
		t.Run(why, func(t *testing.T) {
			r, path := limited(t, test.limit)
			for _, run := range test.runs {
				keep(t, r, run.uid, run.id, run.blocks)
			}
			got, total := kept(t, path)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.Bytes() != total || test.limit > 0 && total > test.limit {
				t.Errorf("got %d bytes counted of %d on disk, limit %d", r.Bytes(), total, test.limit)
			}
		})
	}
}

func TestTheOldestOfAllGoFirst(t *testing.T) {
	r, path := limited(t, 16*16*blockSize)
	keep(t, r, "quiet", "0", 8)
	for _, id := range []string{"1", "2"} { // 41 artifacts of 8 blocks, of which 32 fit in
		for i := range 20 {
			keep(t, r, fmt.Sprintf("cr-%02d", i), id, 8)
		}
	}
	want := []string{"quiet/0"} // The oldest of all, but its CR has no other.
	for i := range 20 {
		if want = append(want, fmt.Sprintf("cr-%02d/2", i)); i >= 9 {
			want = append(want, fmt.Sprintf("cr-%02d/1", i))
		}
	}
	slices.Sort(want)
	got, _ := kept(t, path)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// 20 more CRs, so that not even the newest of each fit in.
	for i := 20; i < 40; i++ {
		keep(t, r, fmt.Sprintf("cr-%02d", i), "3", 8)
	}
	want = nil
	for i := 8; i < 40; i++ {
		want = append(want, fmt.Sprintf("cr-%02d/%d", i, 2+i/20))
	}
	got, total := kept(t, path)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if total != 16*16*blockSize || r.Bytes() != total {
		t.Errorf("got %d bytes counted of %d on disk", r.Bytes(), total)
	}
}

func TestTheLimitHoldsForWhatAPredecessorLeft(t *testing.T) {
	r, path := open(t)
	keep(t, r, "a", "1", 9)
	keep(t, r, "a", "2", 9)
	keep(t, r, "huge", "1", 17)
	outside := filepath.Join(t.TempDir(), "outside")
	writeAll(t, map[string]string{outside: "theirs", filepath.Join(path, "none", "x"): "", filepath.Join(path, "file", "artifacts"): ""})
	if err := os.Symlink(outside, artifactPath(filepath.Join(path, "a", "artifacts"), "link")); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close() })
	if err := next.Limit(16 * 16 * blockSize); err != nil {
		t.Fatal(err)
	}
	got, _ := kept(t, path)
	if diff := cmp.Diff([]string{"a/2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if next.Bytes() != 9*blockSize {
		t.Errorf("got %d bytes, want 9 blocks", next.Bytes())
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "theirs" {
		t.Errorf("got %q (error %v) outside", content, err)
	}
}

func TestAnArtifactEndsAtItsShare(t *testing.T) {
	r, path := limited(t, 16*16*blockSize)
	keep(t, r, uid, "older", 4)
	d := prepare(t, r, "run", Inputs{})
	if got, want := d.Remaining(), int64(15*blockSize); got != want {
		t.Errorf("got room for %d bytes, want %d: older artifacts give way", got, want)
	}
	f, err := d.Create("events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 1000)
	written := 0
	for err == nil {
		if _, err = f.Write(line); err == nil {
			written += len(line)
		}
	}
	if !errors.Is(err, ErrArtifactLimit) || written != 61*1000 {
		t.Errorf("got %d bytes written and %v, want the last line that fits into 15 blocks and ErrArtifactLimit", written, err)
	}
	if n, err := f.Write([]byte("short")); n != 5 || err != nil {
		t.Errorf("got %d, %v, want what fits into the last block written", n, err)
	}
	if err := d.WriteFile("outcome.json", []byte("{}")); !errors.Is(err, ErrArtifactLimit) {
		t.Errorf("got %v, want ErrArtifactLimit", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	closeDir(t, d, 0)
	got, total := kept(t, path)
	if diff := cmp.Diff([]string{uid + "/run"}, got); diff != "" || total != 16*blockSize || r.Bytes() != total {
		t.Errorf("got %d bytes counted of %d on disk (-want +got):\n%s", r.Bytes(), total, diff)
	}
	if files := tree(t, filepath.Join(path, uid, "artifacts", d.artifact)); len(files) != 2 {
		t.Errorf("got %d entries, want the directory and events.jsonl alone", len(files))
	}
}

// Artifacts of live runs do not count towards the limit until their runs end; each has its
// own limit.
func TestLiveArtifactsAreWholeAndTheLimitHoldsAtTheirEnd(t *testing.T) {
	r, path := limited(t, 16*16*blockSize)
	var live []*Dir
	for i := range 17 {
		d, err := r.Prepare(fmt.Sprintf("cr-%02d", i), "run", Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, d)
	}
	for _, d := range live {
		if err := d.WriteFile("events.jsonl", make([]byte, 15*blockSize)); err != nil {
			t.Fatal(err)
		}
	}
	if _, total := kept(t, path); total != 17*16*blockSize || r.Bytes() != 0 {
		t.Errorf("got %d bytes counted of %d on disk; want none of ended runs, and all of live ones whole", r.Bytes(), total)
	}
	for _, d := range live {
		closeDir(t, d, 0)
	}
	if got, total := kept(t, path); len(got) != 16 || slices.Contains(got, "cr-00/run") || total != 16*16*blockSize || r.Bytes() != total {
		t.Errorf("got artifacts %q, %d bytes counted of %d on disk; want all but the oldest", got, r.Bytes(), total)
	}
}

func TestBytesIsWhatIsOnDisk(t *testing.T) {
	for why, limit := range map[string]int64{"with a limit": 64 * blockSize, "without one": 0} {
		t.Run(why, func(t *testing.T) {
			r, path := limited(t, limit)
			random := rand.New(rand.NewPCG(1, uint64(limit)))
			for i := range 150 {
				cr := fmt.Sprintf("cr-%d", random.IntN(20))
				if random.IntN(8) == 0 {
					if err := r.Remove(cr); err != nil {
						t.Fatal(err)
					}
					continue
				}
				d, err := r.Prepare(cr, fmt.Sprintf("run-%d", i), Inputs{})
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"command.json", "outcome.json"}[:random.IntN(3)] {
					if err := d.WriteFile(name, make([]byte, random.IntN(3*blockSize))); err != nil && !errors.Is(err, ErrArtifactLimit) {
						t.Fatal(err)
					}
				}
				if _, total := kept(t, path); limit > 0 && total > limit+limit/crShare {
					t.Fatalf("in step %d: got %d bytes on disk, more than one live artifact above the limit %d", i, total, limit)
				}
				closeDir(t, d, random.IntN(4))
				if _, total := kept(t, path); r.Bytes() != total || limit > 0 && total > limit {
					t.Fatalf("after %d steps: got %d bytes counted of %d on disk, limit %d", i, r.Bytes(), total, limit)
				}
			}
		})
	}
}

func TestRoomWithoutALimit(t *testing.T) {
	r, _ := limited(t, 0)
	d := prepare(t, r, "run", Inputs{})
	defer closeDir(t, d, 0)
	if d.Remaining() < math.MaxInt64/2 {
		t.Errorf("got %d", d.Remaining())
	}
}

func TestAnArtifactsDirectoryThatSomebodyRemoved(t *testing.T) {
	r, path := limited(t, 16*16*blockSize)
	keep(t, r, uid, "old", 9)
	d := prepare(t, r, "run", Inputs{})
	if err := os.RemoveAll(filepath.Join(path, uid, "artifacts")); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("outcome.json", make([]byte, 8*blockSize)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is no such directory", err)
	}
	closeDir(t, d, 1)
	if r.Bytes() != 0 {
		t.Errorf("got %d bytes, want none", r.Bytes())
	}
	keep(t, r, uid, "next", 9)
	if r.Bytes() != 9*blockSize {
		t.Errorf("got %d bytes, want 9 blocks", r.Bytes())
	}
}
