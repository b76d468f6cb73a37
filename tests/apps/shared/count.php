<?php

// A console worker. Requests see its count.

(new Samovar\Counter('visits'))->incr(7);
while (true) {
    sleep(1);
}
