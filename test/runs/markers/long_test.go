//go:build long

package markers_test

// texts are the payloads, each in each place by itself.
func texts(payloads []string) []string { return payloads }

const someEnds = 1 << 10 // All.

func slow() []place {
	return []place{{"a prompt", "- ansible.builtin.pause: {prompt: '{{ cr }}', seconds: 1}\n"}}
}
