package proctree

import "testing"

func TestFindGroup(t *testing.T) {
	const unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	tests := map[string]struct {
		membership, mounts string
		want               group
	}{
		"a machine with version 2 alone": {
			membership: "0::/user.slice/session-1.scope\n",
			mounts:     "24 1 8:1 / / rw - ext4 /dev/sda rw\n" + unified,
			want:       "/sys/fs/cgroup/user.slice/session-1.scope",
		},
		"a container has a namespace of its own": {membership: "0::/\n", mounts: unified, want: "/sys/fs/cgroup"},
		"a hybrid machine has it beside version 1": {
			membership: "4:memory:/a\n1:name=systemd:/b\n0::/c\n",
			mounts: "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"32 24 0:28 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 cgroup2 rw\n",
			want: "/sys/fs/cgroup/unified/c",
		},
		"a mount shows a part of the hierarchy": {
			membership: "0::/kubepods/pod1/manager\n",
			mounts:     "30 24 0:26 /kubepods/pod1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			want:       "/sys/fs/cgroup/manager",
		},
		"a mount shows another part":                 {membership: "0::/kubepods/pod2\n", mounts: "30 24 0:26 /kubepods/pod1 /x rw - cgroup2 cgroup2 rw\n"},
		"the process is outside of the namespace":    {membership: "0::/../../other\n", mounts: unified},
		"version 1 alone":                            {membership: "4:memory:/a\n", mounts: unified},
		"version 2 is mounted nowhere":               {membership: "0::/a\n", mounts: "24 1 8:1 / / rw - ext4 /dev/sda rw\n"},
		"a path with a blank":                        {membership: "0::/a\n", mounts: `30 24 0:26 / /c\040g rw - cgroup2 cgroup2 rw`, want: "/c g/a"},
		"a file of another format":                   {membership: "x\n", mounts: "y\n\n - \n"},
		"a backslash, as in systemd's names, is one": {membership: `0::/a\x2db.service`, mounts: unified, want: `/sys/fs/cgroup/a\x2db.service`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := findGroup(test.membership, test.mounts); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
