package warm

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// setOf is the set for an environment that runs have been launched with.
func setOf(p *Pool, env ...string) *set {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sets[key(shared(env))]
}

func TestAServerThatDoesNotAnswerIsReplaced(t *testing.T) {
	for how, line := range map[string]string{"frozen": "is killed", "deaf": "can't be reached"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			j := &journal{}
			p, o := newPoolWith(t, j.options(0))
			p.lookPause = short
			launched(t, p, "FAKE="+how)
			await(t, "a line about it", func() bool { return j.count(line) > 0 })
			await(t, "another server", func() bool { return o.started() > 2 })
		})
	}
}

func TestAServerThatAnswersStays(t *testing.T) {
	j := &journal{}
	p, o := newPoolWith(t, j.options(0))
	p.lookPause = ample
	launched(t, p, "FAKE=server")
	v := setOf(p, "FAKE=server").servers[0]
	for range 2 {
		await(t, "an answer", func() bool {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.asked && v.answered
		})
		v.mu.Lock()
		v.asked = false
		v.mu.Unlock()
	}
	if o.started() != 2 {
		t.Errorf("%d were started: %q", o.started(), j.lines)
	}
}

func TestAServerThatNobodyReachesIsReplaced(t *testing.T) {
	for why, spoil := range map[string]func(*set) error{
		"the socket is gone": func(s *set) error { return os.Remove(s.socket(module)) },
		"the socket is a file": func(s *set) error {
			return errors.Join(os.Remove(s.socket(module)), os.WriteFile(s.socket(module), nil, 0o600))
		},
		"the socket is somebody else's":   func(s *set) error { return squat(t, s.socket(module), "cold ping") },
		"somebody talks nonsense there":   func(s *set) error { return squat(t, s.socket(module), "hello") },
		"all of the directory is gone":    func(s *set) error { return os.RemoveAll(s.dir) },
		"the directories of all are gone": func(s *set) error { return os.RemoveAll(filepath.Dir(s.dir)) },
		"the servers' own files are empty": func(s *set) error {
			return errors.Join(os.Truncate(s.dir+"/server/serve.py", 0), os.Remove(s.socket(module)))
		},
		"somebody has edited the servers' own files": func(s *set) error {
			content, err := os.ReadFile(s.dir + "/server/serve.py")
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(s.dir+"/server/serve.py", bytes.ToUpper(content), 0o600), os.Remove(s.socket(module)))
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			p, o := newPool(t, 1)
			p.lookPause = short
			launched(t, p, "FAKE=server")
			s := setOf(p, "FAKE=server")
			if err := spoil(s); err != nil {
				t.Fatal(err)
			}
			await(t, "another server", func() bool { return o.started() > 2 })
			v := s.servers[1]
			await(t, "its socket", func() bool { return v.serves() != 0 && reach(s.socket(module), v.serves(), ample) == nil })
			launched(t, p, "FAKE=server")
			want, err := source.ReadFile("server/serve.py")
			if content, errThere := os.ReadFile(s.dir + "/server/serve.py"); err != nil || errThere != nil || !bytes.Equal(content, want) {
				t.Errorf("got the source %q (errors %v, %v)", content, err, errThere)
			}
			if !s.whole() {
				t.Error("stand-ins are missing")
			}
		})
	}
}

// squat listens in the server's place.
func squat(t *testing.T, socket, line string) error {
	t.Helper()
	if err := os.Remove(socket); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // It is the next server's by then.
	t.Cleanup(func() { _ = listener.Close() })
	go answer(listener, line)
	return nil
}

func TestARunFindsItsPrograms(t *testing.T) {
	p, o := newPool(t, 1)
	program := launched(t, p, "FAKE=server")
	s := setOf(p, "FAKE=server")
	for why, spoil := range map[string]func(*set) error{
		"a stand-in is gone":        func(s *set) error { return os.Remove(filepath.Join(s.dir, binName, "python")) },
		"all stand-ins are gone":    func(s *set) error { return os.RemoveAll(filepath.Join(s.dir, binName)) },
		"the real ones are gone":    func(s *set) error { return os.RemoveAll(filepath.Join(s.dir, realName)) },
		"a stand-in leads nowhere":  func(*set) error { return errors.Join(os.Remove(program), os.Symlink("/nowhere", program)) },
		"a stand-in is a directory": func(*set) error { return errors.Join(os.Remove(program), os.Mkdir(program, 0o700)) },
	} {
		t.Run(why, func(t *testing.T) {
			want := s.links()
			if err := spoil(s); err != nil {
				t.Fatal(err)
			}
			launched(t, p, "FAKE=server")
			got := map[string]string{}
			for link := range want {
				got[link], _ = os.Readlink(link)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if o.started() != 2 {
		t.Errorf("%d servers were started", o.started())
	}
}

func TestServersThatWaitForTheirForksEndWithThePool(t *testing.T) {
	p, o := newPool(t, 1)
	launched(t, p, "FAKE=busy", "A=1")
	launched(t, p, "FAKE=busy", "A=2")
	if got := o.count(); got != 4 {
		t.Fatalf("got %d servers", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := o.count(); got != 0 {
		t.Errorf("%d servers are left", got)
	}
}
