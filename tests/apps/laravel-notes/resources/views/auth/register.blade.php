@extends('layout')

@section('title', 'Register')

@section('content')
    @include('form', [
        'action' => route('register'),
        'fields' => [
            'name' => 'text', 'email' => 'text', 'password' => 'password', 'password_confirmation' => 'password',
        ],
        'button' => 'Register',
    ])
@endsection
