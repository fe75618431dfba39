DOCUMENTATION = """
module: db_ping
short_description: needs a library that no test has
requirements: [no_such_library]
options: {}
"""
import no_such_library
