@extends('layout')

@section('title', 'Log in')

@section('content')
    @include('form', [
        'action' => route('login'),
        'fields' => ['email' => 'text', 'password' => 'password'],
        'button' => 'Log in',
    ])
    <a href="{{ route('register') }}">Register</a>
@endsection
