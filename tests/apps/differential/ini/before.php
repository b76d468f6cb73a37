<?php

echo 'before ';
