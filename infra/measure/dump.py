#!/usr/bin/env python3
"""Writes a Disqus dump of a given size in MB, to measure imports with:

    infra/measure/dump.py 300 > target/dump.xml

A post in twenty is spam, and six in ten answer one of the last twenty posts of their thread. `import` here measures with it.
"""

import collections
import random
import sys

WORDS = "the of a tea and cake on river stone bridge quiet morning garden letter old street lamp winter".split()


def message(rng):
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(8, 60)))
    return f"<p>{words} <b>bold</b> &amp; <a href=\"https://blog.example/{rng.randint(1, 999)}\">a link</a>.</p>"


def main():
    limit, rng, written = int(sys.argv[1]) * 1_000_000, random.Random(7), 0
    print('<?xml version="1.0"?>\n<disqus xmlns:dsq="http://disqus.com/disqus-internals">')
    for thread in range(1, 1001):
        print(f'<thread dsq:id="{thread}"><link>https://blog.example/post/{thread}/</link><title>Post {thread}</title></thread>')
    post = 1000
    # Of each thread, those that may be answered next.
    recent = collections.defaultdict(lambda: collections.deque(maxlen=20))
    while written < limit:
        post += 1
        thread = rng.randint(1, 1000)
        is_reply = recent[thread] and rng.random() < 0.6
        parent = f'<parent dsq:id="{rng.choice(recent[thread])}"/>' if is_reply else ""
        recent[thread].append(post)
        spam = "true" if rng.random() < 0.05 else "false"
        text = (
            f'<post dsq:id="{post}"><message><![CDATA[{message(rng)}]]></message>'
            f"<createdAt>20{post % 20 + 5:02}-{post % 12 + 1:02}-{post % 28 + 1:02}T03:{post % 60:02}:05Z</createdAt>"
            f"<isDeleted>false</isDeleted><isSpam>{spam}</isSpam>"
            f"<author><name>Reader {post % 5000}</name><email>reader{post % 5000}@blog.example</email></author>"
            f'<thread dsq:id="{thread}"/>{parent}</post>'
        )
        written += len(text)
        print(text)
    print("</disqus>")


main()
