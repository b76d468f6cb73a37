<?php

// A console worker: what it counts, requests see.

(new Samovar\Counter('visits'))->incr(7);
while (true) {
    sleep(1);
}
