<?php

final abstract class Broken
{
}
