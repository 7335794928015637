"""What spark-submit starts: `spark-submit --py-files dist/groupscope.zip examples/submit.py ...`.

Everything after the file's name is groupscope's own command line.
"""

from groupscope.__main__ import main

main()
