//go:build long

package markers_test

// environments are all that are supported: version of ansible-core → directory.
func environments() map[string]string {
	return map[string]string{"2.19": ".dev/python/2.19", "2.20": ".dev/python/2.20", "2.21": ".venv"}
}

// texts are the payloads, each in each place by itself.
func texts(payloads []string) []string { return payloads }

const someEnds = 1 << 10 // All.

func slow() []place {
	return []place{{"a prompt", "- ansible.builtin.pause: {prompt: '{{ cr }}', seconds: 1}\n"}}
}
